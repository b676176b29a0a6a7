import { ChevronDown, ChevronUp, GripVertical } from "lucide-react"
import { useState, type DragEvent, type KeyboardEvent } from "react"
import { Link } from "react-router"
import { useOne } from "~/api/queries"
import type { Priority, QueuedJob, QueueOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { IconButton } from "~/parts/Button"
import { Select } from "~/parts/Field"
import { Section } from "~/parts/Page"
import { jobPath } from "../overview/job_path"
import { QUEUE, useQueueActions } from "./queue_actions"
import { dropOn, stepFrom } from "./queue_order"

const PRIORITIES: Priority[] = ["high", "normal", "low"]
const REFRESH = 10_000

/** What waits for a machine, in the order in which it is offered: why it waits, and moving it. */
export function Queue() {
  const { t } = useWords()
  const queue = useOne<QueueOut>("/queue", QUEUE, { refetchInterval: REFRESH }).data
  if (!queue || queue.total + queue.hidden === 0) return null
  return (
    <Section title={t("queue.title")}>
      <p className="mb-2 text-sm text-muted">{t("queue.text")}</p>
      {queue.items.length > 0 && <List items={queue.items} />}
      {queue.hidden > 0 && <p className="mt-2 text-sm text-muted">{t("queue.hidden", { count: queue.hidden })}</p>}
    </Section>
  )
}

function List({ items }: { items: QueuedJob[] }) {
  const { move, setPriority } = useQueueActions()
  const [dragged, setDragged] = useState<number | null>(null)
  const [over, setOver] = useState<number | null>(null)
  const end = () => {
    setDragged(null)
    setOver(null)
  }
  const drop = (target: number) => {
    const one = items.find(({ job }) => job.id === dragged)
    const place = one && dropOn(items, one.job.id, target)
    end()
    if (one && place) void move(one, place)
  }
  const hasOthers = new Set(items.map(({ job }) => job.user_id)).size > 1
  return (
    <ol className="card divide-y divide-line">
      {items.map((one) => (
        <Line
          key={one.job.id}
          one={one}
          owner={hasOthers ? one.owner_name : null}
          isDragged={dragged === one.job.id}
          isOver={over === one.job.id && dragged !== one.job.id}
          canStep={(step) => stepFrom(items, one.job.id, step) !== null}
          onStep={(step) => {
            const place = stepFrom(items, one.job.id, step)
            if (place) void move(one, place)
          }}
          onPriority={(priority) => void setPriority(one, priority)}
          drag={{
            start: () => setDragged(one.job.id),
            over: () => dragged !== null && setOver(one.job.id),
            drop: () => drop(one.job.id),
            end,
          }}
        />
      ))}
    </ol>
  )
}

interface LineProps {
  one: QueuedJob
  owner: string | null
  isDragged: boolean
  isOver: boolean
  canStep: (step: -1 | 1) => boolean
  onStep: (step: -1 | 1) => void
  onPriority: (priority: Priority) => void
  drag: Record<"start" | "over" | "drop" | "end", () => void>
}

function Line({ one, owner, isDragged, isOver, canStep, onStep, onPriority, drag }: LineProps) {
  const { t, phrase } = useWords()
  const { job, position, movable } = one
  return (
    <li
      onDragOver={(event) => {
        event.preventDefault()
        drag.over()
      }}
      onDrop={(event) => {
        event.preventDefault()
        drag.drop()
      }}
      className={`flex items-center gap-2 py-2 pr-3 pl-2 text-sm ${isDragged ? "opacity-50" : ""} ${isOver ? "bg-accent-soft" : ""}`}
    >
      {movable ? <Handle name={job.name} onStep={onStep} drag={drag} /> : <span className="w-9 shrink-0" />}
      <span className="num w-7 shrink-0 text-right text-muted">{position}.</span>
      <div className="ml-2 min-w-0 flex-1">
        <div className="flex flex-wrap items-baseline gap-x-3">
          <Link to={jobPath(job)} className="min-w-0 truncate font-medium hover:underline">
            {job.name}
          </Link>
          {owner && <span className="text-xs text-muted">{owner}</span>}
        </div>
        <p className="text-muted">
          {job.waiting ? phrase(job.waiting) : t("queue.next")} <Forecast one={one} />
        </p>
      </div>
      {movable && (
        <>
          <Select
            className="!w-auto max-sm:hidden"
            aria-label={t("queue.priority_of", { name: job.name })}
            value={job.priority}
            onChange={(event) => onPriority(event.target.value as Priority)}
          >
            {PRIORITIES.map((priority) => (
              <option key={priority} value={priority}>
                {t(`priority.${priority}`)}
              </option>
            ))}
          </Select>
          <span className="flex shrink-0">
            <IconButton label={t("queue.up", { name: job.name })} disabled={!canStep(-1)} onClick={() => onStep(-1)}>
              <ChevronUp size={17} aria-hidden />
            </IconButton>
            <IconButton label={t("queue.down", { name: job.name })} disabled={!canStep(1)} onClick={() => onStep(1)}>
              <ChevronDown size={17} aria-hidden />
            </IconButton>
          </span>
        </>
      )}
    </li>
  )
}

/** Grasped with the mouse, or moved with the arrow keys while it has the focus. */
function Handle({ name, onStep, drag }: { name: string } & Pick<LineProps, "onStep" | "drag">) {
  const { t } = useWords()
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : null
    if (step === null) return
    event.preventDefault()
    onStep(step)
  }
  const onDragStart = (event: DragEvent<HTMLButtonElement>) => {
    event.dataTransfer.effectAllowed = "move"
    const row = event.currentTarget.closest("li")
    if (row) event.dataTransfer.setDragImage(row, 20, 20)
    drag.start()
  }
  return (
    <button
      type="button"
      draggable
      onDragStart={onDragStart}
      onDragEnd={drag.end}
      onKeyDown={onKeyDown}
      aria-label={t("queue.move", { name })}
      title={t("queue.move_hint")}
      className="inline-flex h-9 w-9 shrink-0 cursor-grab items-center justify-center rounded-md text-muted hover:bg-hover hover:text-ink active:cursor-grabbing max-sm:hidden"
    >
      <GripVertical size={17} aria-hidden />
    </button>
  )
}

function Forecast({ one }: { one: QueuedJob }) {
  const { t, format } = useWords()
  const { starts_in_seconds: start, predicted_seconds: run } = one
  const facts = [
    typeof start === "number" && start > 0 ? t("queue.starts_in", { time: format.duration(start) }) : null,
    typeof run === "number" ? t("queue.runs", { time: format.duration(run) }) : null,
  ].filter(Boolean)
  return <span className="num">{facts.join(" ")}</span>
}
