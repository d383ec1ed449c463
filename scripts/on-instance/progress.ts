import { type Progress, progressIn } from '../quickstart/progress.ts';

const BUILD = / nodepool\.image\.build\.\S+: (.*)$/;

/** Parses the progress of a build on an instance from a line of the daemon's log. */
export function instanceProgressIn(line: string): Progress | undefined {
  const text = BUILD.exec(line)?.[1];
  return text === undefined ? progressIn(line) : { kind: 'news', text };
}
