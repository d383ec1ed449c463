/** Zuul's API, for what looks for images that its jobs made. Apart from the main entry, which nothing of HTTP is to slow down. */
export { isArtifactGone } from '../zuul-artifact/is-artifact-gone.ts';
export { type BuildMemory, NOTHING_SEEN, type Remembrance } from './build-memory.ts';
export type { BuildQuery } from './build-query.ts';
export type { BuildChoice, ChosenBuild, Refusal, RefusedBuild } from './choose-build.ts';
export type { ZuulAuthentication } from './credentials/create-credentials.ts';
export { type BuildSource, findBuild } from './find-build.ts';
export type { ArtifactRule, ImageArtifact, ImageRules } from './image-artifact.ts';
export { buildSourceOf, zuulApiOf } from './image-source.ts';
export { Poller, type PollerOptions } from './poller.ts';
export { SeenBuilds } from './seen-builds.ts';
export type { ZuulApi } from './zuul-api.ts';
export type { ZuulArtifact, ZuulBuild } from './zuul-build.ts';
export { ZuulError, type ZuulErrorCode } from './zuul-error.ts';
