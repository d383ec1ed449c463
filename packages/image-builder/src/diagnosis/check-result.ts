import { errorMessage } from '../errors.ts';
/** Part of a site to which a check belongs. */
export type CheckArea =
  | 'configuration'
  | 'tools'
  | 'rights'
  | 'disk'
  | 'images-dir'
  | 'job-servers'
  | 'providers'
  | 'sources'
  | 'attestations'
  | 'manager'
  | 'clock';

/** Result of one check of a site, for `doctor`. It contains no secret. */
export interface CheckResult {
  /** Area of the check. Default: the area of the caller, `providers` for a provider and `sources` for a builder. */
  readonly area?: CheckArea;
  /** Subject of the check: `images of cloud west`. */
  readonly subject: string;
  /** `problem`: builds, uploads or the manager fail. */
  readonly status: 'ok' | 'warning' | 'problem';
  /** Result of the check. */
  readonly message: string;
  /** Remedy; absent if there is nothing to do. */
  readonly remedy?: string;
}

/** The value of a step, or the problem with which it failed. */
export type Attempt<T> =
  | { readonly value: T; readonly problem?: never }
  | { readonly problem: CheckResult; readonly value?: never };

/**
 * Runs a step of a check. Its error becomes a problem, whose remedy is the part of the message after the last
 * semicolon.
 *
 * @param remedy for a message without one. Default: to correct what the message names
 * @throws the signal's reason
 */
export async function attempt<T>(
  subject: string,
  signal: AbortSignal,
  step: () => Promise<T>,
  remedy = 'correct what the message names',
): Promise<Attempt<T>> {
  try {
    return { value: await step() };
  } catch (error) {
    signal.throwIfAborted();
    const message = errorMessage(error);
    const at = message.lastIndexOf('; ');
    const problem = { subject, status: 'problem', message, remedy } as const;
    if (at === -1) return { problem };
    return { problem: { ...problem, message: message.slice(0, at), remedy: message.slice(at + 2) } };
  }
}

/**
 * Runs a check. Its error becomes a problem, as in {@link attempt}.
 *
 * @param step returns the message of a good result, or another result
 */
export async function runCheck(
  subject: string,
  signal: AbortSignal,
  step: () => Promise<string | Omit<CheckResult, 'subject'>>,
  remedy?: string,
): Promise<CheckResult> {
  const { problem, value } = await attempt(subject, signal, step, remedy);
  if (problem !== undefined) return problem;
  return { subject, ...(typeof value === 'string' ? { status: 'ok', message: value } : value) };
}

/** Share of a quota from which it counts as nearly used up. */
const NEARLY_FULL = 0.9;

/** Checks how much of a quota is used. */
export function checkQuota(
  { subject, message, remedy }: Pick<CheckResult, 'subject' | 'message' | 'remedy'>,
  usage: number,
  limit: number,
): CheckResult {
  if (usage < NEARLY_FULL * limit) return { subject, status: 'ok', message };
  return { subject, status: usage < limit ? 'warning' : 'problem', message, ...(remedy && { remedy }) };
}

/** Maximum difference in seconds between the clock of this host and another one. */
const MAX_DIFFERENCE = 30;

/** Difference in seconds at which tokens and certificates fail. */
const FATAL_DIFFERENCE = 300;

/**
 * Compares the clock of this host with the header `Date` of a response.
 *
 * @param source sender of the response: `cloud west`
 * @param now time of the response, in milliseconds since 1970
 */
export function checkClock(
  source: string,
  date: string | undefined,
  now: number = Date.now(),
): CheckResult | undefined {
  const time = date === undefined ? Number.NaN : Date.parse(date);
  if (Number.isNaN(time)) return undefined;
  const difference = Math.round((now - time) / 1000);
  const subject = `clock, compared with ${source}`;
  if (Math.abs(difference) <= MAX_DIFFERENCE) {
    return { area: 'clock', subject, status: 'ok', message: `differs by less than ${MAX_DIFFERENCE} s` };
  }
  const message = `is ${Math.abs(difference)} s ${difference > 0 ? 'ahead' : 'behind'}`;
  const status = Math.abs(difference) > FATAL_DIFFERENCE ? 'problem' : 'warning';
  return { area: 'clock', subject, status, message, remedy: 'let NTP set the clock of this host' };
}
