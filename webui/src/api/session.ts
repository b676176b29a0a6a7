import { useQuery } from "@tanstack/react-query"
import { ApiProblem, csrfToken, get, post } from "./http"
import { client, useOne } from "./queries"
import { dashboard } from "./socket"
import type { MeOut, SessionStarted, SystemOut } from "./types.gen"

/** Who is logged in; null for nobody. */
export function useMe() {
  return useQuery({ queryKey: ["me", {}], queryFn: fetchMe, staleTime: 60_000 })
}

async function fetchMe(): Promise<MeOut | null> {
  // The session itself is out of a script's sight; this cookie comes and goes with it.
  if (!csrfToken()) return null
  try {
    return await get<MeOut>("/me")
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 401) return null
    throw error
  }
}

export function useSystem() {
  return useOne<SystemOut>("/system")
}

export async function login(email: string, password: string): Promise<void> {
  await post<SessionStarted>("/auth/login", { email, password })
  await client.resetQueries()
}

export async function setUp(body: { token: string; email: string; name: string; password: string }): Promise<void> {
  await post<SessionStarted>("/setup", body)
  await client.resetQueries()
}

export async function logout(): Promise<void> {
  await post("/auth/logout")
  dashboard.stop()
  client.clear()
  location.assign("/login")
}
