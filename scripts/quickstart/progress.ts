/** What a line of the daemon's log tells of its progress. */
export type Progress =
  /** For people. */
  | { readonly kind: 'news'; readonly text: string }
  /** A build or an upload that will not be ready; the manager would try again later. */
  | { readonly kind: 'failure'; readonly text: string };

const MANAGER = /^\S+ \S+ (?:INFO|WARNING|ERROR) nodepool\.manager: (.*)$/;

/** At the end of a phase disk-image-create prints how long its scripts took, under this heading. */
const PHASE = / nodepool\.image\.build\.\S+: .* \| dib-run-parts Target: (\S+)\.d$/;

/** Undefined if it tells nothing: most lines are the output of disk-image-create. */
export function progressIn(line: string): Progress | undefined {
  const phase = PHASE.exec(line)?.[1];
  if (phase !== undefined) return { kind: 'news', text: `disk-image-create: ${phase} is done` };
  const text = MANAGER.exec(line)?.[1];
  if (text === undefined) return undefined;
  return { kind: /^(?:build|upload) .* failed: /.test(text) ? 'failure' : 'news', text };
}
