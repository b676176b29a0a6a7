import { Navigate, useParams } from "react-router"
import { useList } from "~/api/queries"
import type { ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Loaded, Page } from "~/parts/Page"

/** An import is shown by the model that it brings. */
export default function ImportPage() {
  const { t } = useWords()
  const { id = "" } = useParams()
  const models = useList<ModelOut>("/models")
  return (
    <Page title={t("nav.models")} parent={{ label: t("nav.models"), to: "/models" }}>
      <Loaded query={models}>
        {({ items }) => {
          const model = items.find(({ job_id }) => String(job_id) === id)
          return <Navigate to={model ? `/models/${model.id}` : "/models"} replace />
        }}
      </Loaded>
    </Page>
  )
}
