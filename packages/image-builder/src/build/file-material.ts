import type { Material } from '../attestation.ts';
import type { FullBuildContext } from '../context.ts';
import { fileDigest } from './file-digest.ts';

/** Maximum size of a program or a script with a digest, in bytes. */
const MAX_FILE_SIZE = 256 * 2 ** 20;

/** Describes a program or a script of this host by its digest, and by its git commit if it is in a repository. */
export async function fileMaterial(
  name: string,
  path: string,
  { signal, findRepository }: Pick<FullBuildContext, 'signal' | 'findRepository'>,
): Promise<Material> {
  const [sha256, repository] = [
    await fileDigest(path, { limit: MAX_FILE_SIZE, signal }),
    await findRepository(path),
  ];
  return {
    name,
    ...(repository?.uri !== undefined && { uri: repository.uri }),
    digest: { ...(sha256 && { sha256 }), ...(repository && { gitCommit: repository.commit }) },
    annotations: { path, ...(repository && { isModified: repository.isModified(path) }) },
  };
}
