import { describe, expect, it } from "vitest"
import { complaintsOf } from "~/pages/account/complaints"

describe("complaints of an account form", () => {
  const rules = { name: "needed", email: "email", password: "new_password" } as const

  it("are none for what is right", () => {
    expect(complaintsOf({ name: "Olive", email: "o@example.org", password: "12345678" }, rules)).toEqual({})
  })

  it("stand at the field that they mean", () => {
    expect(complaintsOf({ name: " ", email: "olive", password: "short" }, rules)).toEqual({
      name: "form.required",
      email: "account.email_wrong",
      password: "account.password_short",
    })
  })
})
