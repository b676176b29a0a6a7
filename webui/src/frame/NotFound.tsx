import { Compass } from "lucide-react"
import { useWords } from "~/i18n"
import { ButtonLink } from "~/parts/Button"
import { EmptyState } from "~/parts/EmptyState"
import { Page } from "~/parts/Page"

export function NotFound() {
  const { t } = useWords()
  return (
    <Page title={t("not_found.title")}>
      <EmptyState
        icon={Compass}
        title={t("not_found.title")}
        text={t("not_found.text")}
        action={
          <ButtonLink look="main" to="/">
            {t("nav.overview")}
          </ButtonLink>
        }
      />
    </Page>
  )
}
