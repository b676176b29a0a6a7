import type { FormEvent } from "react"
import type { Key } from "~/i18n"

export const SHORTEST_PASSWORD = 8
type Rule = "needed" | "email" | "new_password"

/** What is wrong with each field, or nothing for those that are right; the hub has the last word. */
export function complaintsOf<Name extends string>(values: Record<Name, string>, rules: Record<Name, Rule>): Partial<Record<Name, Key>> {
  const found: Partial<Record<Name, Key>> = {}
  for (const name of Object.keys(rules) as Name[]) {
    const complaint = complaintOf(values[name], rules[name])
    if (complaint) found[name] = complaint
  }
  return found
}

function complaintOf(value: string, rule: Rule): Key | null {
  if (value.trim() === "") return "form.required"
  if (rule === "email" && !/^[^@\s]+@[^@\s]+$/.test(value.trim())) return "account.email_wrong"
  if (rule === "new_password" && value.length < SHORTEST_PASSWORD) return "account.password_short"
  return null
}

/** Puts the cursor into the first field that has a complaint; its input carries the field's name. */
export function focusFirst(event: FormEvent<HTMLFormElement>, complaints: object): void {
  const field = event.currentTarget.elements.namedItem(Object.keys(complaints)[0] ?? "")
  if (field instanceof HTMLElement) field.focus()
}
