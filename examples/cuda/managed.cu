// A list in managed memory, which the host builds and the device changes, and a managed variable that counts.
#include "check.h"

struct Node {
    int value;
    Node *next;
};

__managed__ int visited;
__managed__ float table[4] = {1, 2, 3, 4};

__global__ void double_values(Node *list) {
    for (Node *node = list; node; node = node->next) {
        node->value *= 2;
        visited++;
    }
    for (float &number : table) number = -number;
}

int main() {
    Node *list = nullptr;
    for (int i = 0; i < 100; i++) {
        Node *node;
        CHECK(cudaMallocManaged(&node, sizeof *node));
        *node = {i, list};
        list = node;
    }
    visited = 1000;
    double_values<<<1, 1>>>(list);
    CHECK(cudaDeviceSynchronize());
    EXPECT(visited == 1100);
    for (int i = 0; i < 4; i++) EXPECT(table[i] == -(i + 1));

    void *address;
    CHECK(cudaGetSymbolAddress(&address, visited));
    EXPECT(address == &visited);
    for (int i = 99; list; i--) {
        EXPECT(list->value == 2 * i);
        Node *next = list->next;
        CHECK(cudaFree(list));
        list = next;
    }
    std::printf("%d nodes of a list\n", visited - 1000);
}
