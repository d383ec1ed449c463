import type { CheckArea, CheckResult, SettingsOf } from '@nodepool-builder/image-builder';
import {
  attempt,
  createMask,
  hiddenValues,
  MAX_TIMER_DELAY,
  unlessAborted,
  visible,
} from '@nodepool-builder/image-builder/internal';
import { recordSchema, TEXT, TEXT_OR_NULL } from '../../terms/record-schema.ts';

/** The areas with their headings, in the order of the output. */
export const AREAS: Readonly<Record<CheckArea, string>> = {
  configuration: 'Configuration',
  tools: 'Tools',
  rights: 'Rights',
  disk: 'Disk space',
  'images-dir': 'Image directory',
  'job-servers': 'Job servers',
  providers: 'Providers',
  sources: 'Image sources',
  attestations: 'Attestations',
  manager: 'Manager',
  clock: 'Clock',
};

/** A check of one part of a site. */
export interface Check {
  readonly area: CheckArea;
  /** Other areas in which its results may be shown. */
  readonly alsoIn?: readonly CheckArea[];
  /** Subject of the result if the check times out or fails. */
  readonly subject: string;
  /** Yields results one by one. Results before a timeout count. */
  run(signal: AbortSignal): AsyncIterable<CheckResult> | Iterable<CheckResult | Promise<CheckResult>>;
}

/** Schema of one result. */
export const CHECK_RECORD = recordSchema({
  area: { enum: Object.keys(AREAS) as CheckArea[], description: 'Part of the site.' },
  subject: { ...TEXT, description: 'Subject of the check.' },
  status: { enum: ['ok', 'warning', 'problem'], description: '`problem`: something fails.' },
  message: { ...TEXT, description: 'Result of the check.' },
  remedy: { ...TEXT_OR_NULL, description: 'What to do; null if there is nothing to do.' },
});

/** A result, with its area. */
export type CheckRecord = SettingsOf<typeof CHECK_RECORD>;

/**
 * Runs all checks concurrently, each with a time limit, and returns their results by area. Results that differ only in
 * their message, such as a program that several disk images lack, are merged.
 *
 * @param seconds time limit of each check
 * @param secrets texts to hide, in addition to the secrets in this process's environment
 * @throws the signal's reason
 */
export async function runChecks(
  checks: readonly Check[],
  seconds: number,
  signal: AbortSignal,
  secrets: readonly string[] = [],
): Promise<readonly CheckRecord[]> {
  const found = await Promise.all(checks.map((check) => runCheck(check, seconds, signal)));
  const mask = createMask([...hiddenValues(), ...secrets]);
  const clean = (text: string): string => visible(mask(text.replaceAll(/\s+/g, ' ').trim()));
  const records = found.flat().map(({ subject, message, remedy, ...record }) => ({
    ...record,
    subject: clean(subject),
    message: clean(message),
    remedy: remedy === null ? null : clean(remedy),
  }));
  const merged = Map.groupBy(records, ({ area, subject, status, remedy }) =>
    JSON.stringify([area, subject, status, remedy]),
  );
  const results = [...merged.values()].flatMap(mergeResults);
  return Object.keys(AREAS).flatMap((area) => results.filter((record) => record.area === area));
}

/** Merges results of the same subject that have a remedy. */
function mergeResults(results: readonly CheckRecord[]): readonly CheckRecord[] {
  const distinct = [...new Map(results.map((result) => [result.message, result])).values()];
  const [first, ...others] = distinct;
  if (first === undefined || others.length === 0 || first.remedy === null) return distinct;
  return [{ ...first, message: `${first.message} (and ${others.length} more)` }];
}

async function runCheck(check: Check, seconds: number, signal: AbortSignal): Promise<readonly CheckRecord[]> {
  const { area, subject } = check;
  const records: CheckRecord[] = [];
  const add = (result: CheckResult): void => {
    records.push({ area, ...result, remedy: result.remedy ?? null });
  };
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), Math.min(seconds * 1000, MAX_TIMER_DELAY));
  const limit = AbortSignal.any([signal, timeout.signal]);
  const collect = async (): Promise<void> => {
    for await (const result of check.run(limit)) {
      limit.throwIfAborted(); // no caller waits any longer
      add(result);
    }
  };
  try {
    // Some checks do not end when their signal aborts, such as one that waits for a dead file system.
    const { problem } = await attempt(subject, limit, () => unlessAborted(collect(), limit));
    if (problem !== undefined) add(problem);
  } catch {
    signal.throwIfAborted();
    const remedy = 'find out what does not respond, or raise --timeout';
    add({ subject, status: 'problem', message: `did not end within ${seconds} s`, remedy });
  } finally {
    clearTimeout(timer);
  }
  return records;
}
