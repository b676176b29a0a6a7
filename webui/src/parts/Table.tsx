import {
  flexRender,
  getCoreRowModel,
  getFilteredRowModel,
  getSortedRowModel,
  useReactTable,
  type ColumnDef,
  type Row,
  type RowData,
  type RowSelectionState,
  type SortingState,
  type Table as TableModel,
  type VisibilityState,
} from "@tanstack/react-table"
import { useVirtualizer } from "@tanstack/react-virtual"
import { ArrowDown, ArrowUp, Columns3 } from "lucide-react"
import { DropdownMenu } from "radix-ui"
import { memo, useCallback, useEffect, useRef, useState, type KeyboardEvent, type MouseEvent, type ReactNode } from "react"
import { useWords } from "~/i18n"
import { Button } from "./Button"
import { Input } from "./Field"
import { useTableState } from "./table_state"

declare module "@tanstack/react-table" {
  interface ColumnMeta<TData extends RowData, TValue> {
    align?: "right"
    /** Only as wide as what it holds. */
    narrow?: boolean
    /** Stays in sight at the right while the others scroll. */
    pinned?: boolean
    /** Left out below this width. */
    from?: "sm" | "md" | "lg" | "xl"
    /** Name in the column menu and for screen readers, where the header is not a text. */
    label?: string
  }
}

const FROM = { sm: "max-sm:hidden", md: "max-md:hidden", lg: "max-lg:hidden", xl: "max-xl:hidden" }
const VIRTUAL_ABOVE = 200
const ROW_HEIGHT = 45

interface Props<T> {
  label: string
  rows: T[]
  columns: ColumnDef<T>[]
  rowId: (row: T) => string
  onOpen?: (row: T) => void
  filterable?: boolean
  /** Total on the hub, when more exist than are shown. */
  total?: number
  sorting?: SortingState
  bulk?: (rows: T[], clear: () => void) => ReactNode
  selected?: string | null
  /** Filter and order live in the URL, and the choice of columns is kept in this browser under this name. */
  name?: string
  /** Further filters, beside the text. */
  filters?: ReactNode
}

export function Table<T>(props: Props<T>) {
  const { t } = useWords()
  const { sorting, setSorting, filter, setFilter, visibility, setVisibility } = useTableState(props.name, props.sorting ?? [])
  const [selection, setSelection] = useState<RowSelectionState>({})
  const table = useReactTable<T>({
    data: props.rows,
    columns: props.bulk ? [selectColumn<T>(t("table.select_row"), t("table.select_all")), ...props.columns] : props.columns,
    getRowId: props.rowId,
    state: { sorting, globalFilter: filter, rowSelection: selection, columnVisibility: visibility },
    onSortingChange: setSorting,
    onGlobalFilterChange: setFilter,
    onRowSelectionChange: setSelection,
    onColumnVisibilityChange: setVisibility,
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
    getFilteredRowModel: getFilteredRowModel(),
  })
  const rows = table.getRowModel().rows
  const chosen = table.getSelectedRowModel().rows.map((row) => row.original)
  const clear = () => setSelection({})
  const isFiltered = rows.length < props.rows.length
  return (
    <div>
      <div className="mb-2 flex min-h-9 flex-wrap items-center gap-2">
        {chosen.length > 0 && props.bulk ? (
          <>
            <span className="text-sm">{t("table.selected", { count: chosen.length })}</span>
            {props.bulk(chosen, clear)}
            <Button look="quiet" onClick={clear}>
              {t("table.clear")}
            </Button>
          </>
        ) : (
          <>
            {props.filterable !== false && (
              <Input
                type="search"
                className="!w-60 max-sm:!w-full"
                value={filter}
                onChange={(event) => setFilter(event.target.value)}
                placeholder={t("table.filter")}
                aria-label={t("table.filter")}
              />
            )}
            {props.filters}
            <span className="num ml-auto text-sm text-muted">{t("table.rows", { count: isFiltered ? rows.length : (props.total ?? rows.length) })}</span>
            <ColumnMenu table={table} />
          </>
        )}
      </div>
      <Body {...props} table={table} rows={rows} visibility={visibility} />
    </div>
  )
}

interface BodyProps<T> extends Omit<Props<T>, "rows"> {
  table: TableModel<T>
  rows: Row<T>[]
  visibility: VisibilityState
}

function Body<T>({ table, rows, label, columns, visibility, onOpen, selected }: BodyProps<T>) {
  const { t } = useWords()
  const latestOpen = useRef(onOpen)
  useEffect(() => {
    latestOpen.current = onOpen
  })
  const open = useCallback((row: unknown) => latestOpen.current?.(row as T), [])
  const box = useRef<HTMLDivElement>(null)
  const isVirtual = rows.length > VIRTUAL_ABOVE
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    enabled: isVirtual,
  })
  const items = virtual.getVirtualItems()
  const shown = isVirtual ? items.map((item) => rows[item.index]!) : rows
  const before = isVirtual ? (items[0]?.start ?? 0) : 0
  const after = isVirtual ? virtual.getTotalSize() - (items[items.length - 1]?.end ?? 0) : 0
  return (
    <div ref={box} className={`card overflow-x-auto ${isVirtual ? "max-h-[70vh] overflow-y-auto" : ""}`}>
      <table className="w-full border-collapse text-sm" aria-label={label} aria-rowcount={rows.length}>
        <thead className="sticky top-0 z-10 bg-surface">
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => {
                const sorted = header.column.getIsSorted()
                const content = flexRender(header.column.columnDef.header, header.getContext())
                return (
                  <th
                    key={header.id}
                    scope="col"
                    aria-sort={sorted === "asc" ? "ascending" : sorted === "desc" ? "descending" : undefined}
                    className={`border-b border-line px-3 py-2 text-left font-medium whitespace-nowrap text-muted ${cellClass(header.column.columnDef)}`}
                  >
                    {header.column.getCanSort() ? (
                      <button
                        type="button"
                        onClick={header.column.getToggleSortingHandler()}
                        className="inline-flex items-center gap-1 font-medium hover:text-ink"
                      >
                        {content}
                        {sorted === "asc" && <ArrowUp size={13} aria-hidden />}
                        {sorted === "desc" && <ArrowDown size={13} aria-hidden />}
                      </button>
                    ) : (
                      content
                    )}
                  </th>
                )
              })}
            </tr>
          ))}
        </thead>
        <tbody>
          {before > 0 && <tr style={{ height: before }} aria-hidden />}
          {shown.map((row) => (
            <TableRow
              key={row.id}
              row={row as Row<unknown>}
              columns={columns}
              visibility={visibility}
              isTicked={row.getIsSelected()}
              isOpen={selected === undefined ? undefined : row.id === selected}
              isLink={onOpen !== undefined}
              open={open}
            />
          ))}
          {after > 0 && <tr style={{ height: after }} aria-hidden />}
          {rows.length === 0 && (
            <tr>
              <td colSpan={99} className="px-3 py-8 text-center text-muted">
                {t("table.no_match")}
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  )
}

interface RowProps {
  row: Row<unknown>
  /** These two are not read here; a row is drawn anew when they change. */
  columns: unknown
  visibility: VisibilityState
  isTicked: boolean
  isOpen: boolean | undefined
  isLink: boolean
  open: (row: unknown) => void
}

/** Scrolling draws only the rows that come into sight. */
const TableRow = memo(function TableRow({ row, isOpen, isLink, open }: RowProps) {
  return (
    <tr
      onClick={(event) => isLink && isRowItself(event) && open(row.original)}
      onKeyDown={moveFocus}
      aria-selected={isOpen}
      className={`group border-b border-line last:border-b-0 hover:bg-hover aria-selected:bg-accent-soft ${isLink ? "cursor-pointer" : ""}`}
    >
      {row.getVisibleCells().map((cell) => (
        <td key={cell.id} className={`h-11 max-w-60 truncate px-3 py-1.5 first:max-w-[22rem] max-sm:max-w-[46vw] ${cellClass(cell.column.columnDef)}`}>
          {flexRender(cell.column.columnDef.cell, cell.getContext())}
        </td>
      ))}
    </tr>
  )
})

function ColumnMenu<T>({ table }: { table: TableModel<T> }) {
  const { t } = useWords()
  const columns = table.getAllLeafColumns().filter((column) => column.getCanHide())
  if (columns.length < 3) return null
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger
        aria-label={t("table.columns")}
        title={t("table.columns")}
        className="inline-flex size-9 items-center justify-center rounded-[7px] text-muted hover:bg-hover"
      >
        <Columns3 size={17} aria-hidden />
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content align="end" className="z-50 rounded-lg border border-line bg-raised p-1 shadow-pop">
          {columns.map((column) => (
            <DropdownMenu.CheckboxItem
              key={column.id}
              checked={column.getIsVisible()}
              onCheckedChange={(checked) => column.toggleVisibility(checked)}
              onSelect={(event) => event.preventDefault()}
              className="flex cursor-pointer items-center gap-2 rounded-md py-1.5 pr-3 pl-7 text-sm outline-none data-[highlighted]:bg-hover"
            >
              <DropdownMenu.ItemIndicator className="-ml-5 w-3">✓</DropdownMenu.ItemIndicator>
              {column.columnDef.meta?.label ?? String(column.columnDef.header ?? column.id)}
            </DropdownMenu.CheckboxItem>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}

function selectColumn<T>(rowLabel: string, allLabel: string): ColumnDef<T> {
  return {
    id: "select",
    enableSorting: false,
    enableHiding: false,
    header: ({ table }) => (
      <input
        type="checkbox"
        aria-label={allLabel}
        checked={table.getIsAllRowsSelected()}
        onChange={table.getToggleAllRowsSelectedHandler()}
      />
    ),
    cell: ({ row }) => (
      <input type="checkbox" aria-label={rowLabel} checked={row.getIsSelected()} onChange={row.getToggleSelectedHandler()} />
    ),
    meta: { from: "sm", narrow: true },
  }
}

function cellClass<T>({ meta }: ColumnDef<T>): string {
  const pinned = meta?.pinned ? "sticky right-0 bg-surface group-hover:bg-hover group-aria-selected:bg-accent-soft" : ""
  return `${pinned} ${meta?.align === "right" ? "num text-right" : ""} ${meta?.narrow ? "w-px !pr-1" : ""} ${meta?.from ? FROM[meta.from] : ""}`
}

/** Not a control in the row, nor a menu or dialog that the row has opened elsewhere on the page. */
function isRowItself({ target, currentTarget }: MouseEvent<HTMLTableRowElement>): boolean {
  return target instanceof Element && currentTarget.contains(target) && target.closest("a, button, input, label, select") === null
}

/** Arrow up and down go to the same control of the next row. */
function moveFocus(event: KeyboardEvent<HTMLTableRowElement>): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return
  const row = event.currentTarget
  const next = event.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling
  const target = next?.querySelector<HTMLElement>("a, button")
  if (!target) return
  event.preventDefault()
  target.focus()
}
