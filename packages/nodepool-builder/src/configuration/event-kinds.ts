/** Kinds of events that a receiver can select. */
export const EVENTS = [
  'build-succeeded',
  'build-recovered',
  'build-failed',
  'build-cancelled',
  'upload-succeeded',
  'upload-recovered',
  'upload-failed',
  'upload-cancelled',
  'image-too-old',
] as const;

/** A kind of event. */
export type EventKind = (typeof EVENTS)[number];
