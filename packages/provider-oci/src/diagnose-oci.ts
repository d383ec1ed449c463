import type { CheckResult } from '@nodepool-builder/image-builder';
import { runCheck } from '@nodepool-builder/image-builder/internal';
import { tryDeletion, tryUpload } from './blob-upload.ts';
import type { Registry } from './registry.ts';

/** Lists the tags of a repository, and checks whether the credentials permit pushes and deletions. */
export async function* diagnoseRegistry(
  provider: string,
  repository: string,
  registry: Registry,
  signal: AbortSignal,
): AsyncGenerator<CheckResult> {
  const subject = `repository of provider ${provider}`;
  const listed = await runCheck(subject, signal, async () => {
    const { length } = await registry.tags(signal);
    return `${repository} has ${length} ${length === 1 ? 'tag' : 'tags'}`;
  });
  yield listed;
  if (listed.status !== 'ok') return;
  yield await runCheck(`push permission of provider ${provider}`, signal, async () => {
    await tryUpload(registry, signal);
    return `uploads to ${repository} are permitted`;
  });
  yield await runCheck(`delete permission of provider ${provider}`, signal, async () => {
    await tryDeletion(registry, signal);
    return `${repository} permits deletions`;
  });
}
