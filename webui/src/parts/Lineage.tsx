import { Boxes, Database, Play, type LucideIcon } from "lucide-react"
import { useLayoutEffect, useRef } from "react"
import { useNavigate } from "react-router"

export interface LineageNode {
  id: string
  kind: "model" | "dataset" | "job"
  label: string
  to: string
  here?: boolean
}
export interface LineageEdge {
  from: string
  to: string
  label?: string
}

const ICONS: Record<LineageNode["kind"], LucideIcon> = { model: Boxes, dataset: Database, job: Play }
const BOX = { width: 220, height: 46, gapX: 56, gapY: 18 }

/** Where a thing comes from, left to right; every node is a link. */
export function Lineage({ nodes, edges, label }: { nodes: LineageNode[]; edges: LineageEdge[]; label: string }) {
  const navigate = useNavigate()
  const places = layOut(nodes, edges)
  const width = Math.max(...[...places.values()].map(({ x }) => x + BOX.width), BOX.width) + 2
  const height = Math.max(...[...places.values()].map(({ y }) => y + BOX.height), BOX.height) + 2
  const box = useRef<HTMLDivElement>(null)
  const here = nodes.find((node) => node.here)
  const hereX = here && places.get(here.id)?.x
  useLayoutEffect(() => {
    if (box.current && hereX !== undefined) box.current.scrollLeft = hereX + BOX.width / 2 + 16 - box.current.clientWidth / 2
  }, [hereX])
  return (
    <div ref={box} className="card overflow-x-auto p-4" tabIndex={0} role="group" aria-label={label}>
      <svg width={width} height={height} viewBox={`-1 -1 ${width} ${height}`} className="max-w-none">
        {edges.map((edge) => {
          const from = places.get(edge.from)
          const to = places.get(edge.to)
          if (!from || !to) return null
          return <path key={`${edge.from}>${edge.to}`} d={curve(from, to)} fill="none" stroke="var(--c-line-strong)" strokeWidth="1.3" />
        })}
        {nodes.map((node) => {
          const { x, y } = places.get(node.id)!
          const Icon = ICONS[node.kind]
          return (
            <a
              key={node.id}
              href={node.to}
              onClick={(event) => {
                event.preventDefault()
                void navigate(node.to)
              }}
              aria-current={node.here ? "true" : undefined}
            >
              <title>{node.label}</title>
              <rect
                x={x}
                y={y}
                width={BOX.width}
                height={BOX.height}
                rx="8"
                fill={node.here ? "var(--c-accent-soft)" : "var(--c-surface)"}
                stroke={node.here ? "var(--c-accent)" : "var(--c-line-strong)"}
              />
              <Icon x={x + 12} y={y + 15} size={16} color="var(--c-muted)" aria-hidden />
              <foreignObject x={x + 36} y={y} width={BOX.width - 44} height={BOX.height}>
                <div className="flex h-full items-center text-[13px]">
                  <span className="truncate">{node.label}</span>
                </div>
              </foreignObject>
            </a>
          )
        })}
      </svg>
    </div>
  )
}

interface Place {
  x: number
  y: number
}

/** Column = the longest way from a root; rows in the order given. Cycles cannot occur in a lineage, but are cut. */
function layOut(nodes: LineageNode[], edges: LineageEdge[]): Map<string, Place> {
  const depth = new Map<string, number>()
  const depthOf = (id: string, path: Set<string>): number => {
    const known = depth.get(id)
    if (known !== undefined) return known
    if (path.has(id)) return 0
    const parents = edges.filter((edge) => edge.to === id)
    const value = parents.length ? 1 + Math.max(...parents.map((edge) => depthOf(edge.from, new Set([...path, id])))) : 0
    depth.set(id, value)
    return value
  }
  const filled = new Map<number, number>()
  const places = new Map<string, Place>()
  for (const node of nodes) {
    const column = depthOf(node.id, new Set())
    const row = filled.get(column) ?? 0
    filled.set(column, row + 1)
    places.set(node.id, { x: column * (BOX.width + BOX.gapX), y: row * (BOX.height + BOX.gapY) })
  }
  return places
}

function curve(from: Place, to: Place): string {
  const x1 = from.x + BOX.width
  const y1 = from.y + BOX.height / 2
  const y2 = to.y + BOX.height / 2
  const middle = (x1 + to.x) / 2
  return `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${to.x},${y2}`
}
