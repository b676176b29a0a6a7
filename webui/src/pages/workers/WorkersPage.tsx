import { useCallback, useMemo } from "react"
import { useList, useOne, type Page as Rows } from "~/api/queries"
import type { WorkerOut, WorkersSummary } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { LiveDot } from "~/parts/LiveDot"
import { Loaded, Page } from "~/parts/Page"
import { Sheet } from "~/parts/Sheet"
import { Table } from "~/parts/Table"
import { useUrlState } from "~/parts/url_state"
import { AddWorkerDialog } from "./AddWorkerDialog"
import { BulkActions } from "./BulkActions"
import { useColumns } from "./columns"
import { EmptyFleet } from "./EmptyFleet"
import { hasState, summaryOf } from "./figures"
import { FleetCards } from "./FleetCards"
import { MasterKeys } from "./MasterKeys"
import { WorkerPanel } from "./WorkerPanel"

export default function WorkersPage() {
  const { t } = useWords()
  const [params, change] = useUrlState()
  const workers = useList<WorkerOut>("/workers")
  const selected = params.get("worker")
  const listed = workers.data?.items.find(({ id }) => String(id) === selected)
  const isEmpty = workers.data?.items.length === 0
  const addButton = (
    <Button look="main" onClick={() => change({ add: "1", worker: null })}>
      {t("workers.add")}
    </Button>
  )
  return (
    <Page wide title={t("nav.workers")} about={t("workers.about")} state={<LiveDot always />} actions={isEmpty ? null : addButton}>
      <Loaded query={workers} rows={6}>
        {(page) => (page.items.length > 0 ? <Fleet page={page} selected={selected} /> : <EmptyFleet action={addButton} />)}
      </Loaded>
      <MasterKeys />
      {listed && <WorkerPanel key={listed.id} worker={listed} onClose={() => change({ worker: null })} />}
      {selected && workers.data && !listed && <UnlistedPanel key={selected} id={selected} onClose={() => change({ worker: null })} />}
      <AddWorkerDialog open={params.has("add")} onClose={() => change({ add: null }, { replace: true })} workers={workers.data?.items ?? []} />
    </Page>
  )
}

/** A machine that is not in the list: of a very large fleet, or removed since the link was made. */
function UnlistedPanel({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useWords()
  const worker = useOne<WorkerOut>(`/workers/${id}`)
  if (worker.data) return <WorkerPanel worker={worker.data} onClose={onClose} />
  return (
    <Sheet title={t("workers.unknown")} heading={<h2 className="py-1.5 text-lg font-semibold">{t("workers.unknown")}</h2>} onClose={onClose}>
      <Loaded query={worker}>{() => null}</Loaded>
    </Sheet>
  )
}

function Fleet({ page, selected }: { page: Rows<WorkerOut>; selected: string | null }) {
  const { t } = useWords()
  const [params, change] = useUrlState()
  const state = params.get("status")
  const open = useCallback((id: number) => change({ worker: String(id) }), [change])
  const columns = useColumns(open)
  const rows = useMemo(() => page.items.filter((worker) => hasState(worker, state)), [page.items, state])
  const isWhole = page.items.length >= page.total
  // Of a fleet that is too large to be fetched whole, the hub counts.
  const counted = useOne<WorkersSummary>(isWhole ? null : "/workers/summary").data
  const summary = useMemo(() => (isWhole ? summaryOf(page.items) : counted), [isWhole, page.items, counted])
  const everyState = state ? (
    <Button look="quiet" onClick={() => change({ status: null }, { replace: true })}>
      {t("workers.all_states")}
    </Button>
  ) : null
  return (
    <>
      <FleetCards summary={summary} filter={state} onFilter={(status) => change({ status }, { replace: true })} />
      <Table
        name="workers"
        label={t("nav.workers")}
        rows={rows}
        total={state ? rows.length : page.total}
        columns={columns}
        rowId={(row) => String(row.id)}
        sorting={[{ id: "name", desc: false }]}
        selected={selected}
        onOpen={(row) => open(row.id)}
        bulk={(ticked, clear) => <BulkActions workers={ticked} onDone={clear} />}
        filters={everyState}
      />
    </>
  )
}
