import type { JobOut } from "~/api/types.gen"

/** Where a job of any kind is shown. */
export function jobPath(job: Pick<JobOut, "id" | "kind">): string {
  if (job.kind === "training") return `/training/${job.id}`
  return "/models"
}
