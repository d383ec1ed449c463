/** Part of a site that a check belongs to. */
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
  /** Default: that of the caller, `providers` for a provider and `sources` for a builder. */
  readonly area?: CheckArea;
  /** Subject of the check: `images of cloud west`. */
  readonly subject: string;
  /** With a `problem`, builds, uploads or the manager fail. */
  readonly status: 'ok' | 'warning' | 'problem';
  /** What was found. */
  readonly message: string;
  /** What to do. Absent if there is nothing to do. */
  readonly remedy?: string;
}

/** The value of a step, or the problem that it failed. */
export type Attempt<T> =
  | { readonly value: T; readonly problem?: never }
  | { readonly problem: CheckResult; readonly value?: never };

/**
 * Takes a step of a check. Its error is a problem: the part of its message behind the last semicolon is the remedy.
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
    const message = messageOf(error);
    const at = message.lastIndexOf('; ');
    const problem = { subject, status: 'problem', message, remedy } as const;
    if (at === -1) return { problem };
    return { problem: { ...problem, message: message.slice(0, at), remedy: message.slice(at + 2) } };
  }
}

/** The error of a host with several addresses has no message. */
function messageOf(error: unknown): string {
  const { message, code, name } = Object(error) as Partial<NodeJS.ErrnoException>;
  return message || code || name || String(error);
}

/** Seconds by which the clock of this host may differ from another one. */
const LARGEST_DIFFERENCE = 30;

/** Difference in seconds from which on tokens and certificates fail. */
const FATAL_DIFFERENCE = 300;

/**
 * Compares the clock of this host with the header `Date` of an answer.
 *
 * @param source of the answer: `cloud west`
 * @param now milliseconds since the epoch, when the answer arrived
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
  if (Math.abs(difference) <= LARGEST_DIFFERENCE) {
    return { area: 'clock', subject, status: 'ok', message: `differs by less than ${LARGEST_DIFFERENCE} s` };
  }
  const message = `is ${Math.abs(difference)} s ${difference > 0 ? 'ahead' : 'behind'}`;
  const status = Math.abs(difference) > FATAL_DIFFERENCE ? 'problem' : 'warning';
  return { area: 'clock', subject, status, message, remedy: 'let NTP set the clock of this host' };
}
