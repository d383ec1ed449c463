import type { CheckResult } from '@nodepool-builder/image-builder';
import { attempt } from '@nodepool-builder/image-builder/internal';
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
  const tags = await attempt(subject, signal, async () => await registry.tags(signal));
  if (tags.problem) {
    yield tags.problem;
    return;
  }
  yield {
    subject,
    status: 'ok',
    message: `${repository} has ${tags.value.length} ${tags.value.length === 1 ? 'tag' : 'tags'}`,
  };
  const rights = `push permission of provider ${provider}`;
  const pushed = await attempt(rights, signal, async () => await tryUpload(registry, signal));
  yield pushed.problem ?? {
    subject: rights,
    status: 'ok',
    message: `uploads to ${repository} are permitted`,
  };
  const deletions = `delete permission of provider ${provider}`;
  const deleted = await attempt(deletions, signal, async () => await tryDeletion(registry, signal));
  yield deleted.problem ?? { subject: deletions, status: 'ok', message: `${repository} permits deletions` };
}
