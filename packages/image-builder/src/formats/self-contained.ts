import { execa } from 'execa';
import { ImageError } from '../errors.ts';
import { formatRow } from '../formats.ts';
import type { ImageFile } from '../types.ts';

/** What `qemu-img info --output=json` says of other files that an image is made of. */
interface ImageInfo {
  readonly 'full-backing-filename'?: string;
  readonly 'format-specific'?: {
    readonly data?: {
      readonly 'data-file'?: string;
      readonly extents?: readonly { readonly filename: string }[];
    };
  };
}

/**
 * Refuses an image whose header refers to other files (a backing file, a data file, extents): qemu-img would copy
 * whatever file of this host it names into the result.
 *
 * @throws ImageError `conversion-failed`
 */
export async function checkSelfContained({ format, path }: ImageFile, signal?: AbortSignal): Promise<void> {
  const { qemuDriver = 'raw' } = formatRow(format);
  if (qemuDriver === 'raw') return;
  const { failed, stdout, stderr, shortMessage } = await execa(
    'qemu-img',
    ['info', '--output=json', '-f', qemuDriver, path],
    { cwd: '/', stdin: 'ignore', reject: false, cleanup: false, ...(signal && { cancelSignal: signal }) },
  );
  signal?.throwIfAborted();
  if (failed)
    throw new ImageError('conversion-failed', `"${path}" is no ${format} image: ${stderr || shortMessage}`);
  const info = JSON.parse(stdout) as ImageInfo;
  const data = info['format-specific']?.data;
  const names = [
    info['full-backing-filename'],
    data?.['data-file'],
    ...(data?.extents ?? []).map((e) => e.filename),
  ];
  const foreign = names.find((name) => name !== undefined && name !== path);
  if (foreign !== undefined) {
    throw new ImageError(
      'conversion-failed',
      `"${path}" refers to another file, "${foreign}", and is not converted; flatten it with "qemu-img convert"`,
    );
  }
}
