import type { SizeRotationSettings, TimeRotationSettings } from '../log-settings.ts';
import { SizeRotation } from './size-rotation.ts';
import { TimeRotation } from './time-rotation.ts';

/** When a log file has to make way for a new one, and how it does. */
export interface Rotation {
  /** @param size bytes that it has, and @param added those that are about to come */
  isDue(size: number, added: number): boolean;
  /** Moves it away, and removes the oldest. */
  rotate(): void;
}

/** The rotation of a file. */
export function rotationOf(path: string, settings: SizeRotationSettings | TimeRotationSettings): Rotation {
  return settings.by === 'size' ? new SizeRotation(path, settings) : new TimeRotation(path, settings);
}
