/** The outcomes of a command, with their exit codes. `--help` and docs/command-line.md show this table. */
export const EXIT_CODES = {
  success: { code: 0, meaning: 'the command succeeded' },
  failed: { code: 1, meaning: 'the command failed, or a configuration file is invalid' },
  usage: { code: 2, meaning: 'the command line is wrong' },
  'not-found': {
    code: 3,
    meaning: 'a file, image, disk image or provider is missing, or no builder offers it',
  },
  refused: {
    code: 4,
    meaning: 'request or credentials were refused, or another process holds the resource',
  },
  unreachable: {
    code: 5,
    meaning: 'a job server, manager, cloud, Zuul or database does not respond; try later',
  },
  cancelled: { code: 6, meaning: 'the command was stopped by SIGINT or SIGTERM, or its job was cancelled' },
  unproven: { code: 7, meaning: 'verify: part of the origin has no attestation by a trusted key' },
  refuted: { code: 8, meaning: 'verify: the image, a record or an attestation contradicts another' },
} as const;

/** A row of {@link EXIT_CODES}. */
export type ExitReason = keyof typeof EXIT_CODES;

/** Codes of typed errors that have an exit code of their own. All other errors are failures. */
const REASONS: Readonly<Record<string, ExitReason>> = {
  'invalid-image-id': 'usage',
  'invalid-filter': 'usage',
  'not-found': 'not-found',
  'image-not-found': 'not-found',
  'image-missing': 'not-found',
  'build-unknown': 'not-found',
  'tenant-unknown': 'not-found',
  'auth-failed': 'refused',
  forbidden: 'refused',
  'quota-exceeded': 'refused',
  'login-refused': 'refused',
  'provider-refused': 'refused',
  'not-ours': 'refused',
  'source-refused': 'refused',
  'store-not-empty': 'refused',
  'store-refused': 'refused',
  'directory-locked': 'refused',
  'image-exists': 'refused',
  'listen-failed': 'refused',
  'connect-failed': 'unreachable',
  'connection-lost': 'unreachable',
  'connection-failed': 'unreachable',
  'server-silent': 'unreachable',
  'service-unavailable': 'unreachable',
  'source-unavailable': 'unreachable',
  'store-unreachable': 'unreachable',
  'rate-limited': 'unreachable',
  'tenant-not-ready': 'unreachable',
  aborted: 'cancelled',
  'build-aborted': 'cancelled',
};

/** Returns the reason of an error: its own, or the reason of its code, such as `not-found`. */
export function exitReasonOf(error: unknown): ExitReason {
  const { code, exitReason } = Object(error) as { code?: unknown; exitReason?: ExitReason };
  if (exitReason !== undefined) return exitReason;
  return (typeof code === 'string' && Object.hasOwn(REASONS, code) && REASONS[code]) || 'failed';
}

/** The table as lines of `--help`. */
export const EXIT_CODE_LINES: readonly string[] = Object.values(EXIT_CODES).map(
  ({ code, meaning }) => `  ${code}  ${meaning}`,
);
