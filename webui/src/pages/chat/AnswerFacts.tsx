import type { MessageOut, ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"

type Facts = Pick<MessageOut, "timings" | "usage" | "finish_reason" | "worker_name"> & { model_id?: number | null }

/** Who answered, how much and how fast, and whether it was cut short. */
export function AnswerFacts({ message, models }: { message: Facts; models: ModelOut[] }) {
  const { t, format } = useWords()
  const { timings, usage } = message
  const shortTime = (seconds: number) => (seconds < 1 ? `${format.number(seconds * 1000, 0)} ms` : format.duration(seconds))
  const facts = [
    models.find(({ id }) => id === message.model_id)?.name,
    message.worker_name,
    usage ? t("chat.tokens", { count: usage.completion_tokens ?? 0 }) : null,
    timings?.tokens_per_second ? t("chat.speed", { speed: format.number(timings.tokens_per_second, 1) }) : null,
    timings?.first_token_seconds ? t("chat.first_token", { time: shortTime(timings.first_token_seconds) }) : null,
    message.finish_reason === "length" ? t("chat.cut") : null,
    message.finish_reason === "cancelled" ? t("chat.stopped") : null,
  ]
  return <span className="num">{facts.filter(Boolean).join(" · ")}</span>
}
