/** Progress from a line of the daemon's log. */
export type Progress =
  /** Text for the terminal. */
  | { readonly kind: 'news'; readonly text: string }
  /** A build or an upload failed; the manager would retry later. */
  | { readonly kind: 'failure'; readonly text: string };

const MANAGER = /^\S+ \S+ (?:INFO|WARNING|ERROR) nodepool\.manager: (.*)$/;

/** Heading of the list of script durations that disk-image-create prints at the end of each phase. */
const PHASE = / nodepool\.image\.build\.\S+: .* \| dib-run-parts Target: (\S+)\.d$/;

/** Undefined for a line without progress, such as most output of disk-image-create. */
export function progressIn(line: string): Progress | undefined {
  const phase = PHASE.exec(line)?.[1];
  if (phase !== undefined) return { kind: 'news', text: `disk-image-create: ${phase} is done` };
  const text = MANAGER.exec(line)?.[1];
  if (text === undefined) return undefined;
  return { kind: /^(?:build|upload) .* failed: /.test(text) ? 'failure' : 'news', text };
}
