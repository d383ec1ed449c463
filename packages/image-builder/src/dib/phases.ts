/** A stage of disk-image-create: what tells of its beginning, and how much of the whole is done by then. */
interface Phase {
  readonly begins: RegExp;
  /** Hundredths, as in a Debian image of ordinary size. */
  readonly done: number;
}

/** The hooks in the order in which disk-image-create runs them; a build need not have all of them. */
const HOOKS: readonly (readonly [hook: string, done: number])[] = [
  ['extra-data', 30],
  ['root', 2],
  ['pre-install', 32],
  ['install', 35],
  ['post-install', 55],
  ['post-root', 65],
  ['block-device', 67],
  ['pre-finalise', 72],
  ['finalise', 74],
  ['cleanup', 80],
];

const PHASES: readonly Phase[] = [
  ...HOOKS.map(([hook, done]) => ({ begins: new RegExp(`dib-run-parts Running \\S*/${hook}\\.d/`), done })),
  { begins: /(?:^|\| )Converting image using qemu-img/, done: 82 },
  { begins: /(?:^|\| )Image file \S+ created/, done: 95 },
  { begins: /(?:^|\| )Build completed successfully/, done: 100 },
];

/** How much of a build is done, in hundredths, when this line of output appears; undefined if it does not tell. */
export function progressOfLine(line: string): number | undefined {
  return PHASES.find(({ begins }) => begins.test(line))?.done;
}
