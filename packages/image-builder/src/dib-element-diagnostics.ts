import {
  ELEMENTS_PATH,
  elementDirectories,
  elementNames,
  elementsOfDib,
  expandElements,
  findElements,
  isDirectory,
} from './dib-elements.ts';
import type { DiskImage } from './disk-image.ts';
import type { Diagnostic } from './modules.ts';
import { nearestName } from './nearest-name.ts';

const DIB_COMMAND = 'disk-image-create';

/**
 * Reports elements that disk-image-create rejects. It reports nothing if it cannot know: without diskimage-builder on
 * this host, or without one of the directories of `ELEMENTS_PATH`. An unknown element that resembles no other one is
 * only a warning, because the diskimage-builder of another host may have it. If a command of the site replaces
 * disk-image-create, everything is only a warning.
 *
 * @param elements elements of the settings, without open quotes
 */
export async function* elementDiagnostics(
  elements: string | readonly string[],
  diskimage: Pick<DiskImage, 'envVars' | 'elementsDir'>,
  command: string,
): AsyncGenerator<Diagnostic> {
  const args = elementNames(elements).map((arg) => arg.split(/\s+/)); // disk-image-create also splits them
  const named = args.flat().filter(Boolean);
  if (named.length === 0) {
    if (command !== DIB_COMMAND) return; // the command may choose elements itself
    yield {
      pointer: '/elements',
      severity: 'job-error',
      reason: `names no element: ${DIB_COMMAND} fails`,
      remedy: 'add an operating system, such as debian-minimal, and what the image needs, such as vm',
    };
    return;
  }
  const { site, shipped } = await elementDirectories(named, diskimage, command);
  for (const directory of site) {
    if (await isDirectory(directory)) continue;
    if (diskimage.envVars?.[ELEMENTS_PATH] === undefined) return; // the check of elements-dir reports it
    yield {
      pointer: `/env-vars/${ELEMENTS_PATH}`,
      severity: 'warning',
      reason: `names "${directory}", which is not a directory on this host: ${DIB_COMMAND} rejects it`,
      remedy: 'create it, or name another one',
    };
    return;
  }
  // A command of the site probably runs disk-image-create.
  const ofDib = shipped.length > 0 ? shipped : await elementsOfDib(DIB_COMMAND, diskimage.envVars?.PATH);
  if (ofDib.length === 0) return;
  const severity = shipped.length > 0 ? 'job-error' : 'warning';
  const found = await findElements([...site, ...ofDib]);
  const { missing, conflicts, hasOperatingSystem } = await expandElements(named, found);
  const pointerOf = (name: string | undefined): string => {
    const index = args.findIndex((words) => name !== undefined && words.includes(name));
    return index === -1 ? '/elements' : `/elements/${index}`;
  };
  for (const [name, dependent] of missing) {
    const nearest = nearestName(name, found.keys());
    const what =
      dependent === undefined ? `names element "${name}"` : `needs element "${name}" for "${dependent}"`;
    yield {
      pointer: pointerOf(dependent ?? name),
      severity: nearest === undefined ? 'warning' : severity,
      reason: `${what}, which is neither in diskimage-builder nor in a directory of ${ELEMENTS_PATH}`,
      remedy:
        nearest === undefined
          ? 'correct its name, or add its directory to elements-dir'
          : `did you mean "${nearest}"?`,
    };
  }
  for (const [name, provider] of conflicts) {
    yield {
      pointer: pointerOf(name),
      severity,
      reason: `has element "${name}", which "${provider}" also provides: ${DIB_COMMAND} rejects both`,
      remedy: 'remove one of them',
    };
  }
  if (hasOperatingSystem || missing.size > 0) return;
  yield {
    pointer: '/elements',
    severity,
    reason: `has no operating system: ${DIB_COMMAND} rejects these elements`,
    remedy: 'add an element such as debian-minimal',
  };
}
