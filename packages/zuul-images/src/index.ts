export { ZuulPollers } from './polling/zuul-pollers.ts';
export { ZUUL_ARTIFACT_MODULE, ZuulArtifactBuilder } from './zuul-artifact.ts';
export type { ZuulSettings } from './zuul-settings.ts';
