import type { JobOut } from "~/api/types.gen"

const PLACES: Record<JobOut["kind"], string> = { training: "/training", evaluation: "/evaluations", export: "/exports", import: "/imports" }

/** Where a job of any kind is shown. */
export function jobPath(job: Pick<JobOut, "id" | "kind">): string {
  return `${PLACES[job.kind]}/${job.id}`
}
