/** SHA-256 as hex. Browsers offer WebCrypto only over HTTPS and on localhost; elsewhere a library does the same, slower. */
export async function sha256(content: Blob): Promise<string> {
  const bytes = new Uint8Array(await content.arrayBuffer())
  if (globalThis.crypto.subtle) return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)))
  const library = await import("@noble/hashes/sha2.js")
  return hex(library.sha256(bytes))
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")
}
