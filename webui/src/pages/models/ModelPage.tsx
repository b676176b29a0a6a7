import { Columns2, MessagesSquare, Play, Trash2 } from "lucide-react"
import { useState } from "react"
import { useNavigate, useParams } from "react-router"
import { useTopic } from "~/api/live"
import { patch, remove } from "~/api/http"
import { storeFresh, useOne, useRefresh } from "~/api/queries"
import type { LineageOut, ModelOut, ProgressOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { ButtonLink } from "~/parts/Button"
import { Confirm } from "~/parts/Confirm"
import { EditableName } from "~/parts/EditableName"
import { Lineage, type LineageNode } from "~/parts/Lineage"
import { Menu } from "~/parts/Menu"
import { Loaded, Page, Section } from "~/parts/Page"
import { ProblemCard } from "~/parts/ProblemCard"
import { Progress } from "~/parts/Progress"
import { StateBadge } from "~/parts/StateBadge"
import { Tabs } from "~/parts/Tabs"
import { usePhase } from "../training/phase"
import { Evaluations } from "./Evaluations"
import { Exports } from "./Exports"
import { Files } from "./Files"
import { ModelFacts } from "./ModelFacts"

export default function ModelPage() {
  const { t } = useWords()
  const { id = "" } = useParams()
  const model = useOne<ModelOut>(`/models/${id}`)
  if (model.data) return <Detail model={model.data} />
  return (
    <Page title={t("nav.models")} parent={{ label: t("nav.models"), to: "/models" }}>
      <Loaded query={model}>{() => null}</Loaded>
    </Page>
  )
}

function Detail({ model }: { model: ModelOut }) {
  const { t, phrase, format } = useWords()
  const navigate = useNavigate()
  const refresh = useRefresh()
  const [isDeleting, setIsDeleting] = useState(false)
  const rename = async (name: string) => storeFresh("models", await patch<ModelOut>(`/models/${model.id}`, { name }))
  const isReady = model.state === "ready"
  const about = [
    model.architecture,
    model.parameters === null ? null : t("models.parameter_count", { count: format.compact(model.parameters) }),
    model.context_length === null ? null : t("models.context_of", { count: model.context_length }),
    model.license,
  ]
  return (
    <Page
      title={model.name}
      heading={<EditableName name={model.name} onRename={rename} />}
      parent={{ label: t("nav.models"), to: "/models" }}
      state={<StateBadge state={model.state} />}
      about={<span className="num">{about.filter(Boolean).join(" · ")}</span>}
      actions={
        <>
          {isReady && (
            <>
              <ButtonLink look="main" to={`/chat?model=${model.id}`}>
                <MessagesSquare size={16} aria-hidden /> {t("models.chat")}
              </ButtonLink>
              <ButtonLink to={`/training/new?model=${model.id}`}>
                <Play size={16} aria-hidden /> {t("models.train")}
              </ButtonLink>
            </>
          )}
          <Menu
            items={[
              ...(isReady && model.base_model_id !== null
                ? [
                    {
                      label: t("models.compare"),
                      icon: <Columns2 size={16} aria-hidden />,
                      onSelect: () => void navigate(`/chat/compare?a=${model.base_model_id}&b=${model.id}`),
                    },
                  ]
                : []),
              { label: t("common.delete"), icon: <Trash2 size={16} aria-hidden />, onSelect: () => setIsDeleting(true), danger: true },
            ]}
          />
        </>
      }
    >
      {model.failure && (
        <ProblemCard title={t("models.failed")} message={phrase(model.failure.message)} line={model.failure.line} advice={model.failure.advice && phrase(model.failure.advice)} />
      )}
      {model.state === "registered" && <Fetching model={model} />}
      <Tabs
        label={model.name}
        tabs={[
          { id: "about", label: t("models.about_tab"), content: () => <About model={model} /> },
          { id: "files", label: t("models.files"), content: () => <Files model={model} /> },
          { id: "exports", label: t("models.exports"), content: () => <Exports model={model} /> },
          { id: "evaluations", label: t("models.evaluations"), content: () => <Evaluations model={model} /> },
        ]}
      />
      <Confirm
        open={isDeleting}
        onClose={() => setIsDeleting(false)}
        title={t("models.delete_one", { name: model.name })}
        action={t("common.delete")}
        onConfirm={async () => {
          await remove(`/models/${model.id}`)
          refresh("models", "list")
          await navigate("/models", { replace: true })
        }}
      >
        {t("models.delete_text", { size: format.bytes(model.size) })}
      </Confirm>
    </Page>
  )
}

/** A model that an agent is still bringing. */
function Fetching({ model }: { model: ModelOut }) {
  const { t } = useWords()
  const phase = usePhase()
  const [progress, setProgress] = useState<ProgressOut | null>(null)
  useTopic(model.job_id === null ? null : `job:${model.job_id}`, ({ type, data }) => {
    if (type === "job.progress") setProgress(data as unknown as ProgressOut)
  })
  const percent = progress?.percent
  return (
    <div className="card mb-6 p-4">
      {progress ? (
        <Progress
          label={model.name}
          phase={phase(progress.phase)}
          fraction={typeof percent === "number" ? percent / 100 : null}
          etaSeconds={progress.eta_seconds}
        />
      ) : (
        <p className="text-sm text-muted">{t("models.registered_text")}</p>
      )}
    </div>
  )
}

function About({ model }: { model: ModelOut }) {
  const { t } = useWords()
  const lineage = useOne<LineageOut>(`/models/${model.id}/lineage`)
  return (
    <>
      <Section title={t("models.lineage")}>
        <Loaded query={lineage} rows={2}>
          {(graph) => <Lineage label={t("models.lineage")} {...drawn(graph, model.id)} />}
        </Loaded>
      </Section>
      <ModelFacts model={model} />
    </>
  )
}

const PATHS: Record<string, string> = { model: "/models", dataset: "/datasets", job: "/training" }

function drawn(graph: LineageOut, modelId: number) {
  const nodes = graph.nodes.flatMap((node): LineageNode[] => {
    const kind = node.kind
    if (kind !== "model" && kind !== "dataset" && kind !== "job") return []
    return [{ id: node.key, kind, label: node.name, to: `${PATHS[kind]}/${node.id}`, here: kind === "model" && node.id === modelId }]
  })
  return { nodes, edges: graph.edges.map(({ source, target, label }) => ({ from: source, to: target, label })) }
}
