const ORIGIN = location.origin

/** Fetches the installer from this hub and runs it. */
export const INSTALL = `curl -fsSL ${ORIGIN}/install/worker | sh`

/** The key goes in by standard input: an argument could be read by everyone on the machine. */
export function initWith(key: string, options = ""): string {
  return `printf '%s' ${key} | parsyn init --url ${ORIGIN} --key-stdin --non-interactive${options}`
}

export const START = "parsyn start"
export const STOP = "parsyn stop"
