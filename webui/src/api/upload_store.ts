import type { PartOut, UploadOut } from "./types.gen"

/** What a browser remembers of an upload that was interrupted; the bytes themselves must be picked again. */
export interface RememberedUpload {
  id: number
  filename: string
  size: number
  name: string
  projectId: number | null
}

const STORED = "parsyn.uploads"

export function rememberedUploads(): RememberedUpload[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(STORED) ?? "[]")
    return Array.isArray(list) ? (list as RememberedUpload[]) : []
  } catch {
    return []
  }
}

export function rememberUpload(upload: RememberedUpload): void {
  store([...rememberedUploads().filter(({ id }) => id !== upload.id), upload])
}

export function forgetUpload(id: number): void {
  store(rememberedUploads().filter((upload) => upload.id !== id))
}

function store(list: RememberedUpload[]): void {
  localStorage.setItem(STORED, JSON.stringify(list))
}

/** First byte and the byte after the last of part n, which counts from 1. */
export function partRange(upload: Pick<UploadOut, "part_size" | "size">, n: number): [number, number] {
  return [(n - 1) * upload.part_size, Math.min(n * upload.part_size, upload.size)]
}

/** The parts that the hub does not have yet, in order. */
export function missingParts(upload: Pick<UploadOut, "parts_total" | "received">): number[] {
  const known = new Set((upload.received ?? []).map(({ n }) => n))
  return Array.from({ length: upload.parts_total }, (_, index) => index + 1).filter((n) => !known.has(n))
}

/** True when the picked file holds what the hub already has: same size, and the same digest for each received part that is checked. */
export async function isSameFile(
  upload: Pick<UploadOut, "size" | "part_size" | "received">,
  file: Blob,
  digest: (part: Blob) => Promise<string>,
  most = 8,
): Promise<boolean> {
  if (file.size !== upload.size) return false
  for (const part of spread(upload.received ?? [], most)) {
    const [from, to] = partRange(upload, part.n)
    if ((await digest(file.slice(from, to))) !== part.sha256) return false
  }
  return true
}

/** At most `most` parts, evenly over the whole, first and last included. */
function spread(parts: PartOut[], most: number): PartOut[] {
  if (parts.length <= most) return parts
  return Array.from({ length: most }, (_, index) => parts[Math.round((index * (parts.length - 1)) / (most - 1))]!)
}
