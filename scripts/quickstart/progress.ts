/** Progress parsed from a line of the daemon's log. */
export type Progress =
  /** Text for the terminal. */
  | { readonly kind: 'news'; readonly text: string }
  /** A build or an upload failed; the manager would retry later. */
  | { readonly kind: 'failure'; readonly text: string };

const MANAGER = /^\S+ \S+ (?:INFO|WARNING|ERROR) nodepool\.manager: (.*)$/;

/** Log line of a failure in the builder, which logs it for the manager in the same process. */
const FAILURE = /^\S+ \S+ ERROR nodepool\.\S+: ((?:build|upload) .* failed.*)$/;

/** Descriptions of the long phases of disk-image-create, shown once they have ended. */
const PHASES: Readonly<Record<string, string>> = {
  root: 'the base system is installed',
  'extra-data': 'files of this machine are copied',
  'pre-install': 'the package sources are set up',
  install: 'the packages are installed',
  'post-install': 'the image is set up',
  finalise: 'the image is cleaned up',
};

/** Heading of the script durations that disk-image-create prints at the end of each phase. */
const PHASE = / nodepool\.image\.build\.\S+: .* \| dib-run-parts Target: (\S+)\.d$/;

/** Undefined for a line without progress, such as most output of disk-image-create. */
export function progressIn(line: string): Progress | undefined {
  const phase = PHASE.exec(line)?.[1];
  if (phase !== undefined) return phase in PHASES ? { kind: 'news', text: PHASES[phase] ?? '' } : undefined;
  const failure = FAILURE.exec(line)?.[1];
  if (failure !== undefined) return { kind: 'failure', text: failure };
  const text = MANAGER.exec(line)?.[1];
  if (text === undefined || text.startsWith('elected leader')) return undefined;
  return { kind: /^(?:build|upload) .* failed: /.test(text) ? 'failure' : 'news', text };
}
