import { isDeepStrictEqual } from 'node:util';
import { isMapping } from '../yaml/yaml-document.ts';

/** Replaces secrets in statements. */
const MASK = '***';

/** Recorded values, complete as far as possible. */
export interface CompletedValues {
  readonly values: Readonly<Record<string, unknown>>;
  /** Keys whose recorded value has a secret that is not known today. */
  readonly missing: readonly string[];
}

/**
 * Completes recorded values: secrets in them come from the values of today. If today's value of a key does not fit the
 * recorded one, it counts in place of it.
 */
export function completed(
  recorded: Readonly<Record<string, unknown>>,
  today: Readonly<Record<string, unknown>>,
): CompletedValues {
  const entries = Object.entries(recorded).map(
    ([key, value]) => [key, unmasked(value, today[key]) ?? today[key]] as const,
  );
  return {
    values: Object.fromEntries(entries.filter(([, value]) => value !== undefined)),
    missing: entries.filter(([, value]) => value === undefined).map(([key]) => key),
  };
}

/** Whether two values are equal, where a secret that one of them masks equals anything. */
export function isSameMasked(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(one, other) || isMaskOf(one, other) || isMaskOf(other, one);
}

function isMaskOf(masked: unknown, value: unknown): boolean {
  const known = unmasked(masked, value);
  return known !== undefined && isDeepStrictEqual(known, value);
}

/** A value with the secrets of another one; undefined if that lacks one of them. */
function unmasked(value: unknown, other: unknown): unknown {
  if (typeof value === 'string') {
    if (!value.includes(MASK)) return value;
    return typeof other === 'string' && fits(other, value) ? other : undefined;
  }
  if (Array.isArray(value)) {
    const others: readonly unknown[] = Array.isArray(other) ? other : [];
    const items = value.map((item, index) => unmasked(item, others[index]));
    return items.includes(undefined) ? undefined : items;
  }
  if (!isMapping(value)) return value;
  const others = isMapping(other) ? other : {};
  const entries = Object.entries(value).map(([key, one]) => [key, unmasked(one, others[key])] as const);
  return entries.some(([, one]) => one === undefined) ? undefined : Object.fromEntries(entries);
}

/** Whether a text becomes `masked` if parts of it are masked. */
function fits(text: string, masked: string): boolean {
  const [first = '', ...parts] = masked.split(MASK);
  const last = parts.pop() ?? '';
  if (!text.startsWith(first)) return false;
  let end = first.length;
  for (const part of parts) {
    const found = text.indexOf(part, end);
    if (found === -1) return false;
    end = found + part.length;
  }
  return text.endsWith(last) && text.length - last.length >= end;
}
