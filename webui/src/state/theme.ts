export type Theme = "system" | "light" | "dark"
const STORED = "parsyn.theme"

export function storedTheme(): Theme {
  const stored = localStorage.getItem(STORED)
  return stored === "light" || stored === "dark" ? stored : "system"
}

/** False where this browser has not been told, and the account's own choice should hold. */
export function isThemeChosen(): boolean {
  return localStorage.getItem(STORED) !== null
}

/** Shows a theme without remembering it as this browser's choice. */
export function showTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  window.dispatchEvent(new Event("themechange"))
}

export function applyTheme(theme: Theme): void {
  localStorage.setItem(STORED, theme)
  showTheme(theme)
}

/** Calls back whenever the drawn colours change; canvases cannot follow a CSS variable by themselves. */
export function onThemeChange(callback: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)")
  system.addEventListener("change", callback)
  window.addEventListener("themechange", callback)
  return () => {
    system.removeEventListener("change", callback)
    window.removeEventListener("themechange", callback)
  }
}

/** The colour that a CSS variable has now, in a form that a canvas understands. */
export function resolveColour(variable: string): string {
  const probe = document.createElement("span")
  probe.style.color = `var(${variable})`
  document.body.append(probe)
  const colour = getComputedStyle(probe).color
  probe.remove()
  return colour
}
