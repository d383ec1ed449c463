import { glob, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { findProgram } from './process/find-program.ts';

/** Directories of the elements that come with diskimage-builder, beside its command. */
export async function elementsOfDib(command: string): Promise<readonly string[]> {
  const found = findProgram(command, process.env.PATH);
  if (!('path' in found)) return [];
  const prefix = dirname(dirname(await realpath(found.path)));
  const places: string[] = [];
  for await (const place of glob(`${prefix}/lib*/python3*/*-packages/diskimage_builder/elements`)) {
    places.push(place);
  }
  return places;
}
