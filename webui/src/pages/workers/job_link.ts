import type { CurrentJob } from "~/api/types.gen"
import { jobPath } from "../overview/job_path"

/** Where the job that a machine works on is shown. */
export function jobLink(job: CurrentJob): string {
  // Somebody else's job has no id here, and nothing to be shown.
  return job.id === 0 ? "/workers" : jobPath(job)
}
