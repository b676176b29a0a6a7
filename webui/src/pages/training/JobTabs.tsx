import type { ReactNode } from "react"
import { useOne } from "~/api/queries"
import type { SampleOut, TrainingJobOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { LogView } from "~/parts/LogView"
import { MessageList, MessageView, type ShownMessage } from "~/parts/MessageView"
import { Loaded } from "~/parts/Page"
import { Tabs } from "~/parts/Tabs"
import { Checkpoints } from "./Checkpoints"
import { Configuration } from "./Configuration"
import type { JobStream } from "./job_stream"
import { Placement } from "./Placement"
import { Timeline } from "./Timeline"

interface Props {
  job: TrainingJobOut
  stream: JobStream
  charts: ReactNode
}

export function JobTabs({ job, stream, charts }: Props) {
  const { t } = useWords()
  return (
    <Tabs
      label={job.name}
      initial={initialTab(job, stream)}
      tabs={[
        { id: "charts", label: t("training.charts"), content: () => charts },
        { id: "log", label: t("training.log"), content: () => <LogView lines={stream.lines} isLoaded={stream.isLoaded} label={t("training.log")} /> },
        { id: "samples", label: t("training.samples"), content: () => <Samples id={job.id} /> },
        { id: "checkpoints", label: t("training.checkpoints"), content: () => <Checkpoints job={job} /> },
        { id: "timeline", label: t("training.timeline"), content: () => <Timeline path={`/training-jobs/${job.id}`} /> },
        { id: "placement", label: t("placement.tab"), content: () => <Placement job={job} /> },
        { id: "configuration", label: t("training.configuration"), content: () => <Configuration job={job} /> },
      ]}
    />
  )
}

/** What one came for: why it waits, why it failed at once, else the curves. */
function initialTab(job: TrainingJobOut, stream: JobStream): string {
  const hasCurves = Object.keys(stream.series).length > 0
  if (hasCurves) return "charts"
  return job.status === "failed" ? "log" : job.status === "queued" ? "placement" : "charts"
}

/** Answers to the same prompts, newest step first within each prompt. */
function Samples({ id }: { id: number }) {
  const { t } = useWords()
  const samples = useOne<{ items: SampleOut[] }>(`/training-jobs/${id}/samples`)
  return (
    <Loaded query={samples}>
      {({ items }) =>
        items.length === 0 ? (
          <p className="card p-6 text-center text-sm text-muted">{t("samples.empty")}</p>
        ) : (
          <div className="max-w-4xl space-y-4">
            {byPrompt(items).map((group) => (
              <PromptSamples key={JSON.stringify(group[0]!.prompt)} group={group} />
            ))}
          </div>
        )
      }
    </Loaded>
  )
}

function PromptSamples({ group }: { group: SampleOut[] }) {
  const { t } = useWords()
  const newest = group[0]!
  return (
    <article className="card px-4 py-2">
      <MessageList messages={newest.prompt as unknown as ShownMessage[]} />
      <div className="border-t border-line">
        {group.map((sample) => (
          <div key={sample.step} className="flex gap-4 border-b border-line last:border-0 max-sm:flex-col max-sm:gap-0">
            <span className="num w-20 shrink-0 pt-4 text-sm text-muted max-sm:pt-3">{t("samples.step", { step: sample.step })}</span>
            <div className="min-w-0 flex-1">
              <MessageView
                message={{ role: "assistant", content: sample.text }}
                footer={sample.text.trim() === "" && <span className="text-sm text-muted">{t("samples.nothing")}</span>}
              />
            </div>
          </div>
        ))}
      </div>
      {newest.reference && (
        <details className="py-2 text-sm">
          <summary className="text-muted">{t("samples.reference")}</summary>
          <p className="mt-1 whitespace-pre-wrap">{newest.reference}</p>
        </details>
      )}
    </article>
  )
}

function byPrompt(samples: SampleOut[]): SampleOut[][] {
  const groups = new Map<string, SampleOut[]>()
  for (const sample of [...samples].sort((a, b) => b.step - a.step)) {
    const key = JSON.stringify(sample.prompt)
    groups.set(key, [...(groups.get(key) ?? []), sample])
  }
  return [...groups.values()]
}
