/** Of js-yaml, what is used here; the package comes without types. */
declare module "js-yaml" {
  export class YAMLException extends Error {
    readonly mark?: { line: number }
  }
  export function load(text: string): unknown
  export function dump(value: unknown, options?: { lineWidth?: number; noRefs?: boolean }): string
}
