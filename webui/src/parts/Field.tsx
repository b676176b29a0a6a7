import { Switch as RadixSwitch } from "radix-ui"
import { useId, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes } from "react"

interface FieldProps {
  label: string
  hint?: ReactNode
  error?: string | undefined
  /** Shown at the right of the label, e.g. a mark that the value differs from the default. */
  aside?: ReactNode
  children: (control: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean }) => ReactNode
}

export function Field({ label, hint, error, aside, children }: FieldProps) {
  const id = useId()
  const describedBy = error ? `${id}-error` : hint ? `${id}-hint` : undefined
  return (
    <div className="min-w-0">
      <div className="mb-1 flex items-baseline justify-between gap-2">
        <label htmlFor={id} className="text-sm font-medium">
          {label}
        </label>
        {aside}
      </div>
      {children({ id, "aria-describedby": describedBy, "aria-invalid": Boolean(error) })}
      {error ? (
        <p id={`${id}-error`} className="mt-1 text-sm text-bad" role="alert">
          {error}
        </p>
      ) : (
        hint && (
          <p id={`${id}-hint`} className="mt-1 text-sm text-muted">
            {hint}
          </p>
        )
      )}
    </div>
  )
}

export function Input({ className = "", ...rest }: InputHTMLAttributes<HTMLInputElement>) {
  return <input className={`control ${className}`} {...rest} />
}

export function TextArea({ className = "", ...rest }: TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return <textarea className={`control ${className}`} {...rest} />
}

export function Select({ className = "", ...rest }: SelectHTMLAttributes<HTMLSelectElement>) {
  return <select className={`control ${className}`} {...rest} />
}

interface SwitchProps {
  checked: boolean
  onChange: (checked: boolean) => void
  id?: string
  label?: string
  disabled?: boolean
}

export function Switch({ checked, onChange, label, ...rest }: SwitchProps) {
  return (
    <RadixSwitch.Root
      checked={checked}
      onCheckedChange={onChange}
      aria-label={label}
      className="relative h-6 w-11 shrink-0 rounded-full border border-line-strong bg-sunken data-[state=checked]:border-accent data-[state=checked]:bg-accent disabled:opacity-50"
      {...rest}
    >
      <RadixSwitch.Thumb className="block size-4 translate-x-1 rounded-full bg-line-strong transition-transform data-[state=checked]:translate-x-[22px] data-[state=checked]:bg-on-accent" />
    </RadixSwitch.Root>
  )
}

/** A small choice among two to four, all in sight. */
export function Segmented<T extends string>(props: {
  label: string
  value: T
  options: { value: T; label: ReactNode }[]
  onChange: (value: T) => void
}) {
  return (
    <div role="radiogroup" aria-label={props.label} className="inline-flex rounded-[7px] border border-line-strong p-0.5">
      {props.options.map((option) => (
        <button
          key={option.value}
          type="button"
          role="radio"
          aria-checked={option.value === props.value}
          onClick={() => props.onChange(option.value)}
          className="min-h-7 rounded-[5px] px-2.5 text-sm text-muted hover:text-ink aria-checked:bg-accent-soft aria-checked:font-medium aria-checked:text-accent"
        >
          {option.label}
        </button>
      ))}
    </div>
  )
}
