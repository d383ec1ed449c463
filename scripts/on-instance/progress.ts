import { type Progress, progressIn } from '../quickstart/progress.ts';

const BUILD = / nodepool\.image\.build\.\S+: (.*)$/;

/** What a line of the daemon's log tells of a build on a running machine: all that its log says, and the manager's news. */
export function instanceProgressIn(line: string): Progress | undefined {
  const text = BUILD.exec(line)?.[1];
  return text === undefined ? progressIn(line) : { kind: 'news', text };
}
