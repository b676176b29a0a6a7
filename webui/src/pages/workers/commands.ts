const ORIGIN = location.origin

const INSTALLER = `curl -fsSL ${ORIGIN}/install/worker | sh`

/** How a machine gets what it needs: as the installer thinks best, in a container, or it has it already. */
export type Runtime = "auto" | "container" | "installed"

/** Fetches the installer from this hub and runs it; null where there is nothing to install. */
export const INSTALL: Record<Runtime, string | null> = {
  auto: INSTALLER,
  container: `${INSTALLER} -s -- --runtime container`,
  installed: null,
}

/** The key goes in by standard input: an argument could be read by everyone on the machine. */
export function initWith(key: string, options = ""): string {
  return `printf '%s' ${key} | parsyn init --url ${ORIGIN} --key-stdin --non-interactive${options}`
}

export const START = "parsyn start"
export const STOP = "parsyn stop"
