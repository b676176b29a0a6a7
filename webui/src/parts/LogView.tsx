import { useVirtualizer } from "@tanstack/react-virtual"
import { ArrowDownToLine, Download, WrapText } from "lucide-react"
import { useEffect, useMemo, useRef, useState } from "react"
import { useWords } from "~/i18n"
import { Button, IconButton } from "./Button"
import { Input, Select } from "./Field"
import { Skeletons } from "./Page"
import { saveFile } from "./save"

export interface LogEntry {
  /** RFC 3339. */
  at: string
  level: string
  text: string
}

const LEVELS = ["debug", "info", "warning", "error"]
const TONES: Record<string, string> = { error: "text-bad", warning: "text-warn", debug: "text-muted" }
const LINE = 20

/** A log that follows its end until one scrolls up. */
export function LogView({ lines, isLoaded, label }: { lines: LogEntry[]; isLoaded: boolean; label: string }) {
  const { t, format } = useWords()
  const [search, setSearch] = useState("")
  const [level, setLevel] = useState("debug")
  const [wrap, setWrap] = useState(false)
  const [follows, setFollows] = useState(true)
  const box = useRef<HTMLDivElement>(null)
  const shown = useMemo(() => selectLines(lines, search, level), [lines, search, level])
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE,
    overscan: 30,
  })
  useEffect(() => {
    if (follows && shown.length > 0) virtual.scrollToIndex(shown.length - 1, { align: "end" })
  }, [follows, shown.length, virtual])
  const onScroll = () => {
    const view = box.current
    if (view) setFollows(view.scrollHeight - view.scrollTop - view.clientHeight < LINE * 2)
  }
  const save = () => saveFile(new Blob([lines.map((line) => `${line.at} ${line.level} ${line.text}\n`).join("")]), "log.txt")
  return (
    <div>
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <Input
          type="search"
          className="!w-60 max-sm:!w-full"
          placeholder={t("log.search")}
          aria-label={t("log.search")}
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <Select className="!w-auto" aria-label={t("log.level")} value={level} onChange={(event) => setLevel(event.target.value)}>
          <option value="debug">{t("log.all")}</option>
          <option value="info">{t("log.info")}</option>
          <option value="warning">{t("log.warning")}</option>
          <option value="error">{t("log.error")}</option>
        </Select>
        <IconButton label={t("log.wrap")} aria-pressed={wrap} onClick={() => setWrap(!wrap)} className="aria-pressed:bg-accent-soft aria-pressed:text-accent">
          <WrapText size={17} aria-hidden />
        </IconButton>
        <IconButton label={t("log.download")} onClick={save}>
          <Download size={17} aria-hidden />
        </IconButton>
        {!follows && (
          <Button look="quiet" onClick={() => setFollows(true)}>
            <ArrowDownToLine size={15} aria-hidden /> {t("log.follow")}
          </Button>
        )}
        <span className="num ml-auto text-sm text-muted">{t("log.lines", { count: shown.length })}</span>
      </div>
      <div
        ref={box}
        onScroll={onScroll}
        tabIndex={0}
        role="log"
        aria-label={label}
        aria-live="off"
        className="card h-[50vh] min-h-60 overflow-auto bg-sunken font-mono text-[12.5px] leading-5"
      >
        <div style={{ height: virtual.getTotalSize(), position: "relative" }} className={wrap ? "" : "w-max min-w-full"}>
          {virtual.getVirtualItems().map((item) => {
            const line = shown[item.index]!
            return (
              <div
                key={item.key}
                data-index={item.index}
                ref={virtual.measureElement}
                style={{ transform: `translateY(${item.start}px)` }}
                className={`absolute top-0 left-0 flex gap-3 px-3 ${wrap ? "w-full" : "w-max"}`}
              >
                <time dateTime={line.at} title={format.dateTime(line.at)} className="shrink-0 text-muted select-none">
                  {format.clock(line.at)}
                </time>
                <span className={`${TONES[line.level] ?? ""} ${wrap ? "min-w-0 break-words whitespace-pre-wrap" : "whitespace-pre"}`}>
                  {LEVELS.indexOf(line.level) >= 2 && <b>{line.level} </b>}
                  {line.text}
                </span>
              </div>
            )
          })}
        </div>
        {lines.length === 0 && (isLoaded ? <p className="p-3 font-sans text-sm text-muted">{t("log.empty")}</p> : <div className="p-3"><Skeletons rows={3} height={16} /></div>)}
      </div>
    </div>
  )
}

function selectLines(lines: LogEntry[], search: string, level: string): LogEntry[] {
  const least = LEVELS.indexOf(level)
  const words = search.toLowerCase()
  if (least <= 0 && !words) return lines
  return lines.filter((line) => {
    const rank = LEVELS.indexOf(line.level)
    return (rank < 0 || rank >= least) && line.text.toLowerCase().includes(words)
  })
}
