import type { CurrentJob } from "~/api/types.gen"

/** Where the job that a machine works on is shown. */
export function jobLink(job: CurrentJob): string {
  // Somebody else's job has no id here, and nothing to be shown.
  if (job.id === 0) return "/workers"
  return job.kind === "training" ? `/training/${job.id}` : "/models"
}
