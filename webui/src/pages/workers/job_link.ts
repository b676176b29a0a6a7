import type { CurrentJob } from "~/api/types.gen"

/** Where the job that a machine works on is shown. */
export function jobLink(job: CurrentJob): string {
  return job.kind === "training" ? `/training/${job.id}` : "/models"
}
