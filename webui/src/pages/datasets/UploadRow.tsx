import { WrongFile, type FileUpload } from "~/api/upload"
import { useWords, type Key } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Progress } from "~/parts/Progress"
import { dismissUpload } from "~/state/uploads"

const PHASES: Record<string, Key> = {
  checking: "upload.checking",
  sending: "upload.sending",
  paused: "upload.paused",
  finishing: "upload.finishing",
  failed: "upload.failed",
}

export function UploadRow({ upload }: { upload: FileUpload }) {
  const { t, format } = useWords()
  const { state, file, sent, rate } = upload
  const phase = PHASES[state]
  const isMoving = state === "sending" || state === "checking"
  return (
    <div>
      <Progress
        label={upload.name}
        phase={`${upload.name}${phase ? ` · ${t(phase)}` : ""}`}
        fraction={state === "checking" ? null : file.size === 0 ? 1 : sent / file.size}
        facts={[
          t("upload.of", { sent: format.bytes(sent), size: format.bytes(file.size) }),
          rate === null ? null : t("upload.rate", { rate: format.bytes(rate) }),
        ]}
        etaSeconds={rate ? (file.size - sent) / rate : null}
        actions={
          <>
            {isMoving && <Button onClick={() => upload.pause()}>{t("upload.pause")}</Button>}
            {(state === "paused" || state === "failed") && (
              <Button onClick={() => void upload.run()}>{state === "paused" ? t("upload.go_on") : t("common.try_again")}</Button>
            )}
            {state !== "finishing" && (
              <Button look="quiet" onClick={() => (upload.error instanceof WrongFile ? dismissUpload(upload) : void upload.cancel())}>
                {t("common.cancel")}
              </Button>
            )}
          </>
        }
      />
      {upload.error instanceof WrongFile ? (
        <p role="alert" className="mt-2 text-sm text-bad">
          {t("upload.wrong_file", { name: upload.error.message })}
        </p>
      ) : (
        <ErrorNote error={upload.error} />
      )}
    </div>
  )
}
