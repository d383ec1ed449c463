/** Program of a thread that does one piece of {@link BomWork}. */
import { createHash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { type BillOfMaterials, formatBillOfMaterials } from './bill-of-materials.ts';
import { type ListedPackages, MAX_PACKAGE_LIST, parsePackageList } from './package-list.ts';

const WORK = {
  async parse(list: { bytes: Uint8Array; sha256?: string | undefined }): Promise<ListedPackages> {
    const { bytes, sha256: expected } = list;
    const found = createHash('sha256').update(bytes).digest('hex');
    if (expected !== undefined && found !== expected) {
      throw new Error(`it was changed: its sha256 is ${found}, but the build attests ${expected}`);
    }
    return await parsePackageList(Buffer.from(bytes).toString());
  },
  async format(contents: BillOfMaterials): Promise<{ readonly text: string; readonly sha256: string }> {
    const text = await formatBillOfMaterials(contents);
    if (Buffer.byteLength(text) > MAX_PACKAGE_LIST) throw new Error('they take more than 8 MiB');
    return { text, sha256: createHash('sha256').update(text).digest('hex') };
  },
} as const;

/** Tasks on package lists by name: functions from their input to their result. */
export type BomWork = typeof WORK;

const { name, input } = workerData as { readonly name: keyof BomWork; readonly input: never };
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(await WORK[name](input));
