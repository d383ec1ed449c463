import { formatRow, type ImageFormat } from '../formats.ts';
import type { DibSettings } from './dib-settings.ts';
import { shellWords } from './shell-words.ts';

/** For qemu older than 1.1, as nodepool has always done. */
const QCOW2_OPTIONS = 'compat=0.10';

/** Types that disk-image-create hands to qemu-img together with the options, which are qcow2's alone. */
const OTHER_QEMU_TYPES: readonly ImageFormat[] = ['vmdk', 'vdi', 'vhdx', 'vpc'];

/**
 * The arguments of disk-image-create, as nodepool has always had them.
 *
 * @param output path of the image without its extension.
 * @throws ImageError `invalid-configuration` for elements with a quote that is not closed
 */
export function dibArguments(
  settings: DibSettings,
  formats: readonly ImageFormat[],
  output: string,
): string[] {
  const qcow2Only = formats.includes('qcow2') && !formats.some((format) => OTHER_QEMU_TYPES.includes(format));
  const { 'qemu-img-options': qemuImgOptions = qcow2Only ? QCOW2_OPTIONS : '' } = settings;
  return [
    '-x',
    '-t',
    inOrder(formats)
      .map((format) => formatRow(format).dibType ?? format)
      .join(','),
    '--no-tmpfs',
    ...(qemuImgOptions === '' ? [] : ['--qemu-img-options', qemuImgOptions]),
    '-o',
    output,
    ...elementsOf(settings),
  ];
}

/**
 * The elements, one by one.
 *
 * @throws ImageError `invalid-configuration` for a quote that is not closed
 */
export function elementsOf({ elements }: DibSettings): readonly string[] {
  return typeof elements === 'string' ? shellWords(elements, 'the list of elements') : (elements ?? []);
}

/** disk-image-create makes a squashfs only if it is the first of the types. */
function inOrder(formats: readonly ImageFormat[]): readonly ImageFormat[] {
  return formats.toSorted((one, other) => Number(other === 'squashfs') - Number(one === 'squashfs'));
}
