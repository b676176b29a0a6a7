export type Theme = "system" | "light" | "dark"
const STORED = "parsyn.theme"

export function storedTheme(): Theme {
  const stored = localStorage.getItem(STORED)
  return stored === "light" || stored === "dark" ? stored : "system"
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  localStorage.setItem(STORED, theme)
  window.dispatchEvent(new Event("themechange"))
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
