import { ImageError } from '@nodepool-builder/image-builder';
import { lookAtArtifact } from '../download/look-at-artifact.ts';
import type { ArtifactAccess } from './artifact-access.ts';
import type { ImageArtifact } from './image-artifact.ts';

/** An artifact that is there still, as far as its server lets one see. */
export interface ArtifactLeft {
  readonly artifact: ImageArtifact;
  /** Bytes as it is stored; unknown if the server does not tell, or did not answer. */
  readonly size?: number;
}

/** What a server was found to have of some artifacts. */
export interface ArtifactsLeft {
  readonly left: readonly ArtifactLeft[];
  /** Why the others are not: `artifact-expired`, one for each. */
  readonly gone: readonly ImageError[];
}

/**
 * Asks the servers of artifacts which of them are there. Only what is said to be gone counts as gone: a server that
 * fails, or refuses, may give it later.
 *
 * @throws the signal's reason
 */
export async function artifactsLeft(
  artifacts: readonly ImageArtifact[],
  access: ArtifactAccess,
  signal: AbortSignal,
): Promise<ArtifactsLeft> {
  const answers = await Promise.all(artifacts.map((artifact) => look(artifact, access, signal)));
  return {
    left: answers.filter((answer) => 'artifact' in answer),
    gone: answers.filter((answer) => answer instanceof ImageError),
  };
}

async function look(
  artifact: ImageArtifact,
  access: ArtifactAccess,
  signal: AbortSignal,
): Promise<ArtifactLeft | ImageError> {
  try {
    return { artifact, ...(await lookAtArtifact({ ...access, url: artifact.url }, signal)) };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ImageError)) throw error;
    return error.code === 'artifact-expired' ? error : { artifact };
  }
}
