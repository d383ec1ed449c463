import type { Material } from '../attestation.ts';
import type { FullBuildContext } from '../context.ts';
import { fileDigest } from './file-digest.ts';

/** Size limit of a program or a script, in bytes: larger ones have no digest. */
const LARGEST_FILE = 256 * 2 ** 20;

/** Describes a program or a script of this host: its digest, and the commit of its git repository if it is in one. */
export async function fileMaterial(
  name: string,
  path: string,
  { signal, findRepository }: Pick<FullBuildContext, 'signal' | 'findRepository'>,
): Promise<Material> {
  const [sha256, repository] = [
    await fileDigest(path, { limit: LARGEST_FILE, signal }),
    await findRepository(path),
  ];
  return {
    name,
    ...(repository?.uri !== undefined && { uri: repository.uri }),
    digest: { ...(sha256 && { sha256 }), ...(repository && { gitCommit: repository.commit }) },
    annotations: { path, ...(repository && { isModified: repository.isModified(path) }) },
  };
}
