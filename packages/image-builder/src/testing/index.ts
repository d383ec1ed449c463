export { imageBuilderContract } from './image-builder-contract.ts';
export { imageListContract, type ListResponse, type ListSite } from './image-list-contract.ts';
export { foreignTo, imageProviderContract, type ProviderSite } from './image-provider-contract.ts';
export { type InstanceSite, instanceProviderContract } from './instance-provider-contract.ts';
