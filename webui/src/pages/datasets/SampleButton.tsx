import { useMutation } from "@tanstack/react-query"
import { useNavigate } from "react-router"
import { post } from "~/api/http"
import type { DatasetOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"

/** Adds the dataset that comes with Parsyn and opens it. */
export function SampleButton() {
  const { t } = useWords()
  const navigate = useNavigate()
  const add = useMutation({
    mutationFn: () => post<DatasetOut>("/datasets/sample"),
    onSuccess: (made) => navigate(`/datasets/${made.id}`),
  })
  return (
    <>
      <Button onClick={() => add.mutate()} busy={add.isPending}>
        {t("datasets.try_sample")}
      </Button>
      <ErrorNote error={add.error} />
    </>
  )
}
