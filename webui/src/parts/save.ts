/** Hands a file made in the page to the browser's downloads. */
export function saveFile(content: Blob, name: string): void {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
